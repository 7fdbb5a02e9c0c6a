#!/usr/bin/python3
import unittest

import check_migrations
from embed_sql import Migration


def breaks(text, version=3, oldest=1):
    return check_migrations.breaks(Migration(version, "test", text, oldest))


class Breaks(unittest.TestCase):
    def test_additions_leave_older_binaries_running(self):
        for text in ("alter table queue add extra text;", "alter table queue add column extra int not null default 0;",
                     "create table thing (id int not null);", "create or replace view v as select 1;",
                     "alter table queue drop constraint c;", "alter table queue alter extra drop not null;",
                     "select 'drop table queue; rename';"):
            self.assertEqual(breaks(text), [], text)

    def test_what_takes_something_away_needs_the_newest_binary(self):
        for text in ("drop table thing;", "alter table queue drop column extra;", "alter table queue drop extra;",
                     "alter table queue rename extra to other;", "alter table queue alter column extra type bigint;",
                     "alter table queue alter extra set not null;", "alter table queue add extra int not null;"):
            self.assertEqual(len(breaks(text)), 1, text)
            self.assertEqual(breaks(text, oldest=3), [], text)


if __name__ == "__main__":
    unittest.main()
