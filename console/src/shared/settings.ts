/** The connectivity settings, which other pages read too, for the rollout policies that they name. */
import { read } from './api/read.js';

/** The id under which the audit has them. */
export const settingsId = 'connectivity';

/** A policy's rename changes them. */
export const settingsQuery = read('connectivity', '/api/settings/connectivity', {}, { follows: ['rollout_policy'] });
