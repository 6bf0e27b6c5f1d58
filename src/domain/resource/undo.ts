/**
 * How a revert undoes one event: the ordinary command that reverses it, and the fields that must still have the event's
 * values. Declarations say this for their events; the lifecycle of all resources is here. `revert/decide.ts` reverts
 * entries. Implements `docs/contract/domain.md#audit-and-revert`.
 */
import type { Json } from '../../kernel/json.js';
import type { Changes } from './change.js';
import type { FleetView } from './fleet-view.js';
import type { AnyCommand, AnyEvent, Former } from './lifecycle.js';
import type { ResourceMeta } from './meta.js';

export type Undo =
  /** The event created the resource, which is deleted unless there is later work on it. */
  | { readonly kind: 'delete'; readonly command: AnyCommand }
  /** The event deleted the resource, which is restored under the same id. */
  | { readonly kind: 'restore'; command(former: Former): AnyCommand }
  /** The event changed fields. Each gets its earlier value, if it still has the event's. */
  | {
      readonly kind: 'change';
      readonly changes: Changes;
      /** Reads a field's present value; undefined when the resource is gone. */
      now(fleet: FleetView): ((field: string) => Json) | undefined;
      /** The part of a value that a refusal may show; absent: all of it. */
      shown?(field: string, value: Json): Json;
      /** Called only while the resource exists. */
      command(fleet: FleetView): AnyCommand;
    };

type ChangeUndo = Extract<Undo, { readonly kind: 'change' }>;

/** The values that changed fields had before. */
export function earlierValues(changes: Changes): { readonly [field: string]: Json } {
  return Object.fromEntries(Object.entries(changes).map(([field, { from }]) => [field, from]));
}

interface LifecycleUndo {
  created(event: AnyEvent): Undo;
  restored(event: AnyEvent): Undo;
  updated(event: { readonly data: { readonly changes: Changes } }): ChangeUndo;
  deleted(event: AnyEvent): Undo;
}

/** @param type `l4_upstream` @param noun `Upstream` in `DeleteUpstream` @param singular `upstream` in `upstream_id` */
export function lifecycleUndo(type: string, noun: string, singular: string): LifecycleUndo {
  const idField = `${singular}_id`;
  const idOf = ({ data }: { readonly data: object }): string => String(Reflect.get(data, idField));
  const remove = (event: AnyEvent): Undo => {
    const command = { type: `Delete${noun}`, id: idOf(event), ifMatch: undefined };
    return { kind: 'delete', command };
  };
  return {
    created: remove,
    restored: remove,
    updated(event) {
      const id = idOf(event);
      const { changes } = event.data;
      return {
        kind: 'change',
        changes,
        now(fleet) {
          const state = fleet.get<ResourceMeta>({ type }, id);
          return state && ((field) => (Reflect.get(state, field) as Json | undefined) ?? null);
        },
        command: () => ({ ...earlierValues(changes), type: `Update${noun}`, id, ifMatch: undefined }),
      };
    },
    deleted(event) {
      const { [idField]: id, ...taken } = event.data as Record<string, unknown>;
      return { kind: 'restore', command: (former) => ({ ...taken, type: `Restore${noun}`, id, former }) };
    },
  };
}
