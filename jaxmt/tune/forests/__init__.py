"""Methods that learn weights from packed forests."""
