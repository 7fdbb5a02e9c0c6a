// The duration of an attempt, divided into what happened in it.

export interface PhaseTimes {
  lookup_us: number | null;
  connect_us: number | null;
  tls_us: number | null;
  send_us?: number | null;
  first_byte_us: number | null;
  total_us: number | null;
}

export type PhaseName = 'lookup' | 'connect' | 'tls' | 'send' | 'wait' | 'read' | 'unknown';

export interface Segment {
  name: PhaseName;
  label: string;
  us: number;
}

const labels: Record<PhaseName, string> = {
  lookup: 'DNS lookup',
  connect: 'connect',
  tls: 'TLS',
  send: 'send',
  wait: 'wait for the response',
  read: 'read the response',
  unknown: 'not measured',
};

/**
 * Segments in order; their sum is `total_us`. `first_byte_us` is the time from the connection to the first byte of the
 * response; without `send_us` it is one segment.
 */
export function segmentsOf(phases: PhaseTimes): Segment[] {
  const segments: Segment[] = [];
  let left = phases.total_us ?? 0;
  const take = (name: PhaseName, us: number | null | undefined, label = labels[name]) => {
    if (us === null || us === undefined || us <= 0 || left <= 0) return;
    const taken = Math.min(us, left);
    segments.push({ name, label, us: taken });
    left -= taken;
  };
  take('lookup', phases.lookup_us);
  take('connect', phases.connect_us);
  take('tls', phases.tls_us);
  if (phases.first_byte_us !== null) {
    const send = Math.min(phases.send_us ?? 0, phases.first_byte_us);
    take('send', send);
    take('wait', phases.first_byte_us - send, phases.send_us ? labels.wait : 'send and wait');
    take('read', left);
  } else {
    take(segments.length === 0 ? 'unknown' : 'wait', left, segments.length === 0 ? labels.unknown : 'until it failed');
  }
  return segments;
}

/** An exchange of a test has only phases: with a response but no lookup, connect or TLS, the connection was open already. */
export function isReused(phases: PhaseTimes, connectionReused?: boolean | null): boolean {
  if (connectionReused !== undefined) return connectionReused === true;
  return (
    phases.lookup_us === null && phases.connect_us === null && phases.tls_us === null && phases.first_byte_us !== null
  );
}
