"""The explorer of kvfuzz beside Spin, on one small model that both are given."""
