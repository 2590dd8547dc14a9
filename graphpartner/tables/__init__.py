"""What do people's files say? Readers, columns, ids, encoding, problems."""
