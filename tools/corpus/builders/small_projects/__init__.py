"""Small projects for decoys and honest controls; each file here describes one."""
