//! A small order service: charging an order and publishing the event is one transaction.
//!
//! usage: DATABASE_URL=… orders charge ORDER CENTS [--fail | --crash]
//!
//! --fail rolls back, --crash kills the process before the commit: in both cases there is neither a charge nor an event.
use std::error::Error;

use serde_json::json;
use tokio_postgres::{types::Json, Client, NoTls};

/// Returns the ID of the order's event.
async fn charge(
    client: &mut Client,
    order: &str,
    cents: i32,
    before_commit: impl FnOnce() -> Result<(), Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    let transaction = client.transaction().await?; // rolled back if it is dropped
    transaction
        .execute("insert into charge (order_id, cents) values ($1, $2)", &[&order, &cents])
        .await?;
    let data = Json(json!({"order": order, "cents": cents}));
    let event = transaction
        .query_one(
            "select postrider.publish($1, $2, $3::json, id => $4)",
            &[&"acme", &"order.charged", &data, &format!("charge-{order}")],
        )
        .await?
        .get(0);
    before_commit()?;
    transaction.commit().await?;
    Ok(event)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, order, cents, how @ ..] = arguments.as_slice() else {
        return Err("usage: orders charge ORDER CENTS [--fail | --crash]".into());
    };
    if verb != "charge" {
        return Err("the only verb is charge".into());
    }
    let (mut client, connection) = tokio_postgres::connect(&std::env::var("DATABASE_URL")?, NoTls).await?;
    tokio::spawn(connection);
    let how = how.first().map(String::as_str);
    let event = charge(&mut client, order, cents.parse()?, || match how {
        Some("--fail") => Err("the payment provider declined".into()),
        Some("--crash") => std::process::abort(),
        _ => Ok(()),
    })
    .await?;
    println!("{event}");
    Ok(())
}
