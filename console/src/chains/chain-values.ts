/** A chain as its form holds it, and as the API takes it: what is empty in the form is left out of a request. */
import type { Schemas } from '../shared/api/client.js';
import type { Chain, Hop, Transport } from './chains.js';

export interface HopValues {
  readonly node_id: string;
  readonly listen_addr: string;
  /** As typed. */
  readonly listen_port: string;
  readonly outer: Hop['outer'];
  readonly security: Hop['security'];
  readonly server_names: readonly string[];
  readonly credential_id: string;
  readonly max_streams: number | '';
  readonly dial_addr: string;
}

export type Values = {
  readonly name: string;
  readonly description: string;
  readonly enabled: boolean;
  readonly payload: Chain['payload'];
  readonly hops: readonly HopValues[];
  readonly target: Chain['target'];
};

export const anyAddress = '0.0.0.0';

/** @param transport the first that the payload allows */
export const newHop = ({ outer, security }: Pick<Transport, 'outer' | 'security'>): HopValues => ({
  node_id: '',
  listen_addr: anyAddress,
  listen_port: '',
  outer,
  security,
  server_names: [],
  credential_id: '',
  max_streams: '',
  dial_addr: '',
});

const hopValues = (hop: Hop): HopValues => ({
  ...newHop(hop),
  ...hop,
  listen_port: String(hop.listen_port),
});

export function valuesOf(chain: Chain | undefined): Values {
  if (chain === undefined) {
    const hops = [newHop({ outer: 'tcp', security: 'raw' })];
    return { name: '', description: '', enabled: true, payload: 'tcp', hops, target: { upstream_id: '' } };
  }
  const { name, description, enabled, payload, hops, target } = chain;
  return { name, description: description ?? '', enabled, payload, hops: hops.map(hopValues), target };
}

function hopOf({ listen_port, server_names, credential_id, max_streams, dial_addr, ...hop }: HopValues) {
  return {
    ...hop,
    listen_port: Number(listen_port),
    ...(server_names.length > 0 && { server_names: [...server_names] }),
    ...(credential_id !== '' && { credential_id }),
    ...(max_streams !== '' && { max_streams }),
    ...(dial_addr !== '' && { dial_addr }),
  };
}

/** The body of a request: all of a new chain, or what was changed. */
export function bodyOf({ description, hops, ...values }: Partial<Values>): Schemas['L4ChainChanges'] {
  return {
    ...values,
    ...(description !== undefined && { description: description === '' ? null : description }),
    ...(hops !== undefined && { hops: hops.map(hopOf) }),
  } as Schemas['L4ChainChanges'];
}
