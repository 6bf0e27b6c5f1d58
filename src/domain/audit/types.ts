/**
 * The resource types of audit entries: those of the contract, some of which this release does not write yet, and every
 * resource of the fleet. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import { userType } from '../accounts/declaration.js';
import { resourceTypes, singletonTypes } from '../fleet/resources.js';
import { serviceType } from '../service/identity.js';

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
  serviceType,
] as const;

export const auditedTypes: readonly string[] = [...new Set([...contract, ...resourceTypes, ...singletonTypes])];
