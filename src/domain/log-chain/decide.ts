/** Decides whether the log chain of a stream begins, or goes over to another key. Implements `docs/operations.md#the-log-chain`. */
import { ok } from '../../kernel/result.js';
import type { Decision } from '../resource/refusal.js';
import type { LogChainEvent } from './declaration.js';
import type { ChainHead } from './links.js';

/** Begins the chain of a stream, or takes it over to the key of this instance. */
export interface EnsureLogChain {
  readonly type: 'EnsureLogChain';
  readonly keyId: string;
}

export function decideLogChain(head: ChainHead, { keyId }: EnsureLogChain): Decision<LogChainEvent> {
  if (head.keyId === keyId) return ok([]);
  if (head.keyId === null) return ok([{ type: 'LogChainStarted', data: { key_id: keyId } }]);
  return ok([{ type: 'LogChainKeyChanged', data: { key_id: { from: head.keyId, to: keyId } } }]);
}
