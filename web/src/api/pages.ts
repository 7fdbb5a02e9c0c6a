// Pages of lists. The server looks at a limited number of rows per request, so a page can be short although more follow.

export interface Page<Row> {
  rows: Row[];
  next?: string;
}

const requestsMax = 5;
const millisecondsMax = 2000;

/** Asks on while the page is short and there is more, within limits. */
export async function fillPage<Row>(
  want: number,
  cursor: string | undefined,
  ask: (cursor: string | undefined) => Promise<{ data: Row[]; next_cursor?: string }>,
): Promise<Page<Row>> {
  const rows: Row[] = [];
  const started = Date.now();
  let next = cursor;
  for (let request = 0; request < requestsMax; ++request) {
    const answer = await ask(next);
    rows.push(...answer.data);
    next = answer.next_cursor;
    if (!next || rows.length >= want || Date.now() - started > millisecondsMax) break;
  }
  return { rows, next };
}
