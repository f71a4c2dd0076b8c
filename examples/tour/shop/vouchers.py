"""Gift vouchers."""

from decimal import Decimal


def redeem(total: Decimal, voucher: Decimal) -> Decimal
    """Return the amount left to pay."""
    return max(total - voucher, Decimal(0))
