#!/usr/bin/python3
"""Processes the inbound webhooks of one source: claim, process, acknowledge.

usage: inbox_consumer.py DATABASE_URL SOURCE WORKER [--until-empty]

The message is acknowledged in the transaction that processes it, so both commit or neither does. If a consumer dies, its
lease expires and another consumer gets the message. NOTIFY wakes the consumer, and it also polls every few seconds.
"""

import json
import select
import sys

import psycopg2

LEASE = "30 seconds"
POLL_SECONDS = 5


def process(cursor, message_id, body):
    """Your code. This example writes a row per message."""
    cursor.execute("insert into processed (message_id, body, worker) values (%s, %s, %s)",
                   [message_id, json.dumps(json.loads(body)), sys.argv[3]])


def work(connection, source, worker):
    """Claims some messages and processes them; returns their number."""
    with connection, connection.cursor() as cursor:
        cursor.execute("select id, body from postrider.inbox_claim(%s, %s, 10, %s)", [worker, source, LEASE])
        claimed = cursor.fetchall()
    for message_id, body in claimed:
        try:
            with connection, connection.cursor() as cursor:
                process(cursor, message_id, body)
                cursor.execute("select postrider.inbox_ack(%s, %s)", [worker, [message_id]])
                if cursor.fetchone()[0] == 0:
                    connection.rollback()  # the lease has passed to another worker, which processes the message
        except Exception as error:  # whatever the error is, the message is retried later
            with connection, connection.cursor() as cursor:
                cursor.execute("select postrider.inbox_nack(%s, %s, %s)", [worker, message_id, str(error)])
    return len(claimed)


def main():
    url, source, worker = sys.argv[1:4]
    until_empty = "--until-empty" in sys.argv
    connection, waker = psycopg2.connect(url), psycopg2.connect(url)
    waker.autocommit = True
    waker.cursor().execute("listen postrider_inbox")
    while True:
        while work(connection, source, worker) > 0:
            pass
        if until_empty:
            return
        select.select([waker], [], [], POLL_SECONDS)
        waker.poll()
        waker.notifies.clear()


if __name__ == "__main__":
    main()
