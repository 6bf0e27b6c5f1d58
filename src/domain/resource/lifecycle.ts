/**
 * The lifecycle that every resource has: the types of its create, update and delete events and commands, made from its
 * definition, and the complete list of a definition's fields. Decisions are in `lifecycle-decisions.ts`.
 */
import type { Changes } from './change.js';
import type { Owned } from './meta.js';
import type { IfMatch } from './refusal.js';

/** An event of any type. */
export interface AnyEvent {
  readonly type: string;
  readonly data: object;
}

/** A command of any type. */
export interface AnyCommand {
  readonly type: string;
}

/** The state from which a deleted resource continues when it is restored. */
export interface Former {
  /** RFC 3339. */
  readonly created_at: string;
  /** The number of its events, with the delete. */
  readonly version: number;
}

/**
 * `UpstreamCreated`, `UpstreamUpdated`, `UpstreamDeleted` and `UpstreamRestored` for the noun `Upstream`. Only the revert
 * of a delete restores.
 * @typeParam Id the field of the data that holds the resource's id
 * @typeParam Definition what operators describe; a delete carries it too, for its revert
 * @typeParam AlsoDeleted what a delete removes besides the definition
 */
export type LifecycleEvent<Noun extends string, Id extends string, Definition, AlsoDeleted = unknown> =
  | { readonly type: `${Noun}Created`; readonly data: { readonly [K in Id]: string } & Definition & Owned }
  | { readonly type: `${Noun}Updated`; readonly data: { readonly [K in Id]: string } & { readonly changes: Changes } }
  | {
      readonly type: `${Noun}Deleted`;
      readonly data: { readonly [K in Id]: string } & Definition & AlsoDeleted & Owned;
    }
  | {
      readonly type: `${Noun}Restored`;
      readonly data: { readonly [K in Id]: string } & Definition & AlsoDeleted & Owned & { readonly former: Former };
    };

/** A partial update: absent fields stay. @typeParam Fixed fields that only a create sets */
export type PartialUpdate<Definition, Fixed extends keyof Definition = never> = {
  readonly [K in Exclude<keyof Definition, Fixed>]?: Definition[K] | undefined;
};

/** The command that reverts a delete, with everything that it removed. */
export type RestoreCommand<Noun extends string, Definition, AlsoDeleted = unknown> = {
  readonly type: `Restore${Noun}`;
  readonly id: string;
  readonly former: Former;
} & Definition &
  AlsoDeleted &
  Owned;

/** `CreateUpstream`, `UpdateUpstream`, `DeleteUpstream` and `RestoreUpstream` for the noun `Upstream`. */
export type LifecycleCommand<
  Noun extends string,
  Definition,
  Fixed extends keyof Definition = never,
  AlsoDeleted = unknown,
> =
  | ({ readonly type: `Create${Noun}`; readonly id: string } & Definition & Owned)
  | ({ readonly type: `Update${Noun}`; readonly id: string; readonly ifMatch: IfMatch } & PartialUpdate<
      Definition,
      Fixed
    > &
      Owned)
  | { readonly type: `Delete${Noun}`; readonly id: string; readonly ifMatch: IfMatch }
  | RestoreCommand<Noun, Definition, AlsoDeleted>;

/** A list with every field of a definition; if some are missing, the type of a list of those. */
export type CompleteFields<Definition, F extends readonly (keyof Definition)[]> = [
  Exclude<keyof Definition, F[number]>,
] extends [never]
  ? F
  : readonly Exclude<keyof Definition, F[number]>[];

/**
 * Every field of a definition, in the order of events. An incomplete list does not compile.
 * Usage: `fieldsOf<UpstreamDefinition>()(['name', 'endpoint', …])`.
 */
export const fieldsOf =
  <Definition>() =>
  <const F extends readonly (keyof Definition)[]>(
    fields: CompleteFields<Definition, F>,
  ): readonly (keyof Definition)[] =>
    fields as readonly (keyof Definition)[];

/** The named fields of a value, without undefined ones. */
export function pick<T extends object, K extends keyof T>(value: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(
    fields.filter((field) => value[field] !== undefined).map((field) => [field, value[field]]),
  ) as Pick<T, K>;
}
