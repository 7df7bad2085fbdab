"""What is told about the CUDA parts of a machine."""

from tilelang.cuda.diagnose import diagnose
from tilelang.env import env


def parts():
    return {part.name: part for part in diagnose()}


def test_a_driver_is_described_with_its_devices(driver):
    found = parts()
    assert found["CUDA driver"].found
    assert found["CUDA driver"].detail == f"CUDA 13.0, {driver.path}"
    assert found["cuda:1"].detail == "Fake GPU 1, sm_89"
    assert not driver.called("retain")


def test_a_missing_driver_is_no_failure():
    with env.scope(TILELANG_CUDA_DRIVER="libno_driver.so.1"):
        driver = parts()["CUDA driver"]
    assert not driver.found and "libno_driver.so.1" in driver.detail


def test_compilers_are_told_either_way():
    found = parts()
    assert {"NVRTC", "nvcc"} <= set(found)
    assert all(part.detail for part in found.values())
