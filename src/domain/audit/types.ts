/**
 * The resource types that an audit entry may be of: those of the contract, of which some come with later releases, and
 * every resource of the fleet. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import { userType } from '../accounts/declaration.js';
import { resourceTypes, singletonTypes } from '../fleet/resources.js';

const contract = [
  'node',
  'l4_chain',
  'l4_upstream',
  'route',
  'credential',
  'listener_policy',
  'l3_network',
  'connectivity',
  userType,
  'session',
  'service',
] as const;

export const auditedTypes: readonly string[] = [...new Set([...contract, ...resourceTypes, ...singletonTypes])];
