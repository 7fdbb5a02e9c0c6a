// A small order service: charging an order and publishing the event is one transaction.
//
// usage: DATABASE_URL=… orders charge ORDER CENTS [--fail | --crash]
//
// --fail rolls back, --crash kills the process before the commit: in both cases there is neither a charge nor an event.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// charge returns the ID of the order's event.
func charge(ctx context.Context, db *sql.DB, order string, cents int, beforeCommit func() error) (string, error) {
	data, err := json.Marshal(map[string]any{"order": order, "cents": cents})
	if err != nil {
		return "", err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // has no effect after the commit
	if _, err := tx.ExecContext(ctx, "insert into charge (order_id, cents) values ($1, $2)", order, cents); err != nil {
		return "", err
	}
	var event string
	err = tx.QueryRowContext(ctx, "select postrider.publish($1, $2, $3::json, id => $4)",
		"acme", "order.charged", string(data), "charge-"+order).Scan(&event)
	if err != nil {
		return "", err
	}
	if err := beforeCommit(); err != nil {
		return "", err
	}
	return event, tx.Commit()
}

func run(arguments []string) error {
	if len(arguments) < 3 || arguments[0] != "charge" {
		return errors.New("usage: orders charge ORDER CENTS [--fail | --crash]")
	}
	cents, err := strconv.Atoi(arguments[2])
	if err != nil {
		return fmt.Errorf("CENTS must be a number: %w", err)
	}
	beforeCommit := func() error { return nil }
	switch {
	case len(arguments) > 3 && arguments[3] == "--fail":
		beforeCommit = func() error { return errors.New("the payment provider declined") }
	case len(arguments) > 3 && arguments[3] == "--crash":
		beforeCommit = func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	}
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close()
	event, err := charge(context.Background(), db, arguments[1], cents, beforeCommit)
	if err == nil {
		fmt.Println(event)
	}
	return err
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
