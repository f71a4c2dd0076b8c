"""The text: lines, places in them, insertion and deletion."""
