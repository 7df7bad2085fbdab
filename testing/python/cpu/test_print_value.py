"""What the printing function of compiled kernels reads from memory."""

import torch

from tilelang.cpu.print_value import print_value, read_region


def test_reading_a_region_leaves_out_what_lies_outside():
    data = torch.arange(6, dtype=torch.float32)
    got = read_region("float32", data.data_ptr(), [6], [1], [-2], [5])
    assert got.tolist() == [0, 1, 2]
    assert read_region("float32", data.data_ptr(), [6], [1], [6], [4]).size == 0
    backwards = read_region("float32", data[5:].data_ptr(), [6], [-1], [0], [6])
    assert backwards.tolist() == [5, 4, 3, 2, 1, 0]


def test_packed_elements_may_start_inside_a_byte():
    codes = torch.tensor([0x21, 0x43, 0xF5], dtype=torch.uint8)
    assert read_region("uint4", codes.data_ptr(), [3], [1], [0], [3], before=1).tolist() == [
        2,
        3,
        4,
    ]
    assert read_region("int4", codes.data_ptr(), [6], [1], [4], [2]).tolist() == [5, -1]


def test_a_message_alone(capsys):
    print_value("file.py:3: ", "text", "", "", 0, 0, 2, 4, 5)
    assert capsys.readouterr().out == "[block (4, 5)] file.py:3: text\n"


def test_a_region_of_no_elements_is_printed_as_such(capsys):
    print_value("", "", "A = ", "float32", 8, 1, 0, 0, 0, 0, 0, 0)
    assert capsys.readouterr().out == "A = []\n"
