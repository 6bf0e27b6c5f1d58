/**
 * Gives every property the same seed, so that a run repeats the run before it and fails because of a change only. Another
 * search: `PROPERTY_SEED=$RANDOM npx vitest run <file>`.
 */
import { env } from 'node:process';
import fc from 'fast-check';

fc.configureGlobal({ seed: Number(env['PROPERTY_SEED'] ?? 20_261_122) });
