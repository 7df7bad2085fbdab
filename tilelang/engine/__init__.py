"""The compile driver: lowering a traced program to a launchable artifact."""
