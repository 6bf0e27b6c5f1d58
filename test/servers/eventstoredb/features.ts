/** `ServerFeatures` and `Gossip`: what 23.10.8 reports about itself. */
import { structuredUuid } from './calls.js';
import type { Faults, Member } from './faults.js';
import type { Plain } from './wire.js';

const client = 'event_store.client.';
const startedAt = Date.now();
const subscriptionFeatures = ['stream', 'all'];

/** Services, their methods, and the features reported for some of them. */
const services: readonly (readonly [string, readonly (readonly [string, (readonly string[])?])[]])[] = [
  ['redaction.redaction', [['geteventpositions'], ['switchchunks']]],
  [
    'persistent_subscriptions.persistentsubscriptions',
    ['create', 'update', 'delete', 'read', 'getinfo', 'replayparked', 'list', 'restartsubsystem'].map(
      (method) => [method, subscriptionFeatures] as const,
    ),
  ],
  [
    'users.users',
    ['create', 'update', 'delete', 'disable', 'enable', 'details', 'changepassword', 'resetpassword'].map(
      (method) => [method] as const,
    ),
  ],
  [
    'streams.streams',
    [['read', ['position', 'events']], ['append'], ['delete'], ['tombstone'], ['batchappend', ['deadline_duration']]],
  ],
  [
    'operations.operations',
    [
      'startscavenge',
      'stopscavenge',
      'shutdown',
      'mergeindexes',
      'resignnode',
      'setnodepriority',
      'restartpersistentsubscriptions',
    ].map((method) => [method] as const),
  ],
  ['gossip.gossip', [['read']]],
  ['monitoring.monitoring', [['stats']]],
  ['server_features.serverfeatures', [['getsupportedmethods']]],
];

export const supportedMethods: Plain = {
  methods: services.flatMap(([service, methods]) =>
    methods.map(([methodName, features]) => ({
      methodName,
      serviceName: client + service,
      ...(features === undefined ? {} : { features }),
    })),
  ),
  eventStoreServerVersion: '23.10.8',
};

/**
 * The nodes that this one knows of. Times are ticks of 100 ns. A node without others renews its own only when its role
 * changes, so this one's stays at the time of its start.
 */
export function clusterInfo(address: string, port: number, { leader, members, noNodes }: Faults): Plain {
  const alone: Member = { port, state: leader === undefined ? 'Leader' : 'Follower', alive: true };
  const known = members ?? [
    alone,
    ...(leader === undefined ? [] : [{ ...alone, ...leader, state: 'Leader' as const }]),
  ];
  return {
    members: known.map(({ port: at, state, alive }) => ({
      instanceId: structuredUuid(`00000000-0000-4000-8000-${String(at).padStart(12, '0')}`),
      timeStamp: `${startedAt}0000`,
      state,
      isAlive: alive && !noNodes,
      httpEndPoint: { address, port: at },
    })),
  };
}
