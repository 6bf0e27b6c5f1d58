/** The key of the log chain of benchmarks. Those that are repeated share the log of an external store, so they share its key. */
import { createSecretKey } from 'node:crypto';
import type { LogChainKey } from '../../src/security/log-chain/log-chain.js';

export const benchChainKey: LogChainKey = { installationId: 'bench', key: createSecretKey(Buffer.alloc(32, 1)) };
