"""What people look at: tables, the answer in words, the report, figures."""
