/**
 * An event of a type or schema version that this release does not know is an error that names it, never skipped
 * (`docs/contract/domain.md#commands-and-events`).
 */
import { describe, expect, it } from 'vitest';
import { emptyFleet } from '../../src/domain/fleet/fleet.js';
import { UnknownEventError, readCommand, readEvent } from '../../src/domain/log/upcast.js';
import { fleetEvent } from '../../src/domain/fleet/resources.js';
import type { RecordedEvent } from '../../src/kernel/event.js';
import * as f from '../support/fleet.js';

const fleet = emptyFleet();
const performed = f.perform(fleet, f.createNode('a', { psk: { fingerprint: 'f', verifier: f.sealed } }));
const command = performed.kind === 'written' ? performed.command : undefined;
const [first, second] = command!.events as readonly [RecordedEvent, RecordedEvent];

const caught = (read: () => unknown): unknown => {
  try {
    read();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe('an unknown event', () => {
  it.each(['HologramCreated', 'nodecreated', '', 'constructor', 'toString', '__proto__'])(
    'of type %j is an error that names it',
    (type) => {
      const error = caught(() => readEvent({ ...first, type }));
      expect(error).toBeInstanceOf(UnknownEventError);
      expect(error).toMatchObject({ eventType: type, name: 'UnknownEventError' });
      expect(String(error)).toContain(`the event ${type} with schema version 1 at svc-fleet@0`);
    },
  );

  it.each([2, 99, 0, -1, 1.5, Number.NaN, undefined])('of schema version %s is an error that names it', (version) => {
    const metadata = { ...first.metadata, schema_version: version as number };
    const error = caught(() => readEvent({ ...first, metadata }));
    expect(error).toBeInstanceOf(UnknownEventError);
    expect(String(error)).toContain(`NodeCreated with schema version ${version}`);
  });

  it('makes its whole command unreadable', () => {
    const events = [first, { ...second, type: 'NodeRotated' }] as const;
    expect(caught(() => readCommand({ stream: first.stream, events }))).toMatchObject({ eventType: 'NodeRotated' });
  });

  it('does not include those that this release writes', () => {
    expect(readCommand(command!)).toEqual(command);
  });

  it('of the fleet is also one of another stream', () => {
    expect(() => fleetEvent({ ...first, stream: 'svc-accounts' })).toThrow('svc-accounts@0');
  });
});
