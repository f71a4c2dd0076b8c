"""Gift vouchers."""

from decimal import Decimal


def redeem(total: Decimal, voucher: Decimal) -> Decimal
    """What is left to pay."""
    return max(total - voucher, Decimal(0))
