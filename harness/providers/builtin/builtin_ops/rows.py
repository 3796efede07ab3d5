"""How wide a program is that holds one whole row in registers."""

import triton

#: Above this a row spills on every target; operators that take longer rows loop instead.
LONGEST_ROW = 65536


def row_block(columns: int) -> tuple[int, int]:
    """(block, num_warps) for a row of `columns` elements; ValueError when it does not fit in one program."""
    if not 0 < columns <= LONGEST_ROW:
        raise ValueError(f"row of {columns} elements: one program holds 1 to {LONGEST_ROW}; use shorter rows")
    block = triton.next_power_of_2(columns)
    return block, min(max(block // 512, 1), 16)
