/** The key of the log chain of benchmarks. Repeated benchmarks share the log of an external store, and so its key. */
import { createSecretKey } from 'node:crypto';
import type { LogChainKey } from '../../src/security/log-chain/log-chain.js';

export const benchChainKey: LogChainKey = { installationId: 'bench', key: createSecretKey(Buffer.alloc(32, 1)) };
