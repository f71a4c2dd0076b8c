"""Small projects that decoys and honest controls are made of; each folder here describes one."""
