// States of things: a word, an icon and a colour, never colour alone.

export type Tone = 'neutral' | 'info' | 'warn' | 'good' | 'bad' | 'pause' | 'breaker';
export type IconName =
  | 'circle-dashed' | 'loader-circle' | 'rotate-cw' | 'circle-check' | 'mail-x' | 'ban' | 'power-off' | 'circle-pause'
  | 'octagon-pause' | 'zap-off' | 'triangle-alert' | 'octagon-alert' | 'key-round' | 'circle-x';

export interface State {
  word: string;
  icon: IconName;
  tone: Tone;
}

const deliveryStates: Record<string, State> = {
  pending: { word: 'Pending', icon: 'circle-dashed', tone: 'neutral' },
  processing: { word: 'Sending', icon: 'loader-circle', tone: 'info' },
  retrying: { word: 'Retrying', icon: 'rotate-cw', tone: 'warn' },
  delivered: { word: 'Delivered', icon: 'circle-check', tone: 'good' },
  dead_letter: { word: 'Dead letter', icon: 'mail-x', tone: 'bad' },
  canceled: { word: 'Canceled', icon: 'ban', tone: 'neutral' },
};

export function deliveryState(status: string): State {
  return deliveryStates[status] ?? { word: status, icon: 'circle-dashed', tone: 'neutral' };
}

export interface EndpointFacts {
  status: string;
  health: string;
  breaker: string;
  held_reason: string | null;
}

const endpointStates = {
  disabled: { word: 'Disabled', icon: 'power-off', tone: 'neutral' },
  paused: { word: 'Paused', icon: 'circle-pause', tone: 'pause' },
  held: { word: 'Held', icon: 'key-round', tone: 'breaker' },
  open: { word: 'Breaker open', icon: 'zap-off', tone: 'breaker' },
  unhealthy: { word: 'Unhealthy', icon: 'octagon-alert', tone: 'bad' },
  failing: { word: 'Failing', icon: 'triangle-alert', tone: 'warn' },
  active: { word: 'Active', icon: 'circle-check', tone: 'good' },
} satisfies Record<string, State>;

/** All that applies, the most important first: that one is the main word, the rest are chips beside it. */
export function endpointChips(endpoint: EndpointFacts): State[] {
  const states: State[] = [];
  if (endpoint.status === 'disabled') states.push(endpointStates.disabled);
  if (endpoint.status === 'paused') states.push(endpointStates.paused);
  if (endpoint.held_reason) states.push(endpointStates.held);
  if (endpoint.breaker === 'open') states.push(endpointStates.open);
  if (endpoint.health === 'unhealthy') states.push(endpointStates.unhealthy);
  if (endpoint.health === 'failing') states.push(endpointStates.failing);
  return states.length > 0 ? states : [endpointStates.active];
}

const replayStates: Record<string, State> = {
  queued: { word: 'Queued', icon: 'circle-dashed', tone: 'neutral' },
  running: { word: 'Running', icon: 'loader-circle', tone: 'info' },
  completed: { word: 'All queued', icon: 'circle-check', tone: 'good' },
  canceled: { word: 'Canceled', icon: 'ban', tone: 'neutral' },
};

export function replayState(status: string, pending: number): State {
  if (status === 'completed' && pending > 0) return { word: 'Delivering', icon: 'loader-circle', tone: 'info' };
  if (status === 'completed') return { word: 'Completed', icon: 'circle-check', tone: 'good' };
  return replayStates[status] ?? { word: status, icon: 'circle-dashed', tone: 'neutral' };
}

export function tenantState(status: string): State {
  return status === 'paused' ? endpointStates.paused : endpointStates.active;
}
