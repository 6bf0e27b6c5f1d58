/**
 * Makes the declaration of a resource that is created, updated, deleted and restored from names, fields and rules. A resource
 * with further commands or events spreads the result and adds them. Implements `docs/architecture.md#adding-a-resource`.
 */
import { lifecycleAudit } from './audit-change.js';
import type { EventContext, EventDeclaration, FleetEventDeclaration, Resource } from './declaration.js';
import type { FleetView, ResourceKey } from './fleet-view.js';
import type { AnyEvent, CompleteFields, LifecycleCommand, LifecycleEvent } from './lifecycle.js';
import { lifecycleDecisions, type SaveRules } from './lifecycle-decisions.js';
import { lifecycleFold } from './lifecycle-fold.js';
import type { ResourceMeta } from './meta.js';
import { lifecycleUndo, type Undo } from './undo.js';

/** The parts that are passed through to the declaration. */
type Common<S extends ResourceMeta & Named> = Pick<
  Resource<string, string, string, S, AnyEvent, never>,
  'sealed' | 'indexed' | 'compiled' | 'objectionTo'
>;

interface Named {
  readonly name: string;
}

/** For a state without further fields. */
export type WithoutFields = Record<never, never>;

interface Options<
  Noun extends string,
  Singular extends string,
  S extends ResourceMeta & Named,
  D extends Named,
  F extends readonly (keyof D)[],
>
  extends Common<S>, SaveRules<S> {
  /** `Upstream` in `UpstreamCreated`; the capitalised type unless given. */
  readonly noun?: Noun;
  /** `upstream` in `upstream_id`; the type unless given. */
  readonly singular?: Singular;
  /** Every field of the definition. */
  readonly fields: CompleteFields<D, F>;
  /** The values of fields that events of earlier releases lack. */
  readonly absent?: Partial<D>;
  /**
   * Ids of the nodes whose configuration changes with the resource, given the fleet before; null for none. `before` is
   * undefined for a new or restored resource, `after` for a deleted one.
   */
  readonly touches: ((fleet: FleetView, before: S | undefined, after: S | undefined) => Iterable<string>) | null;
}

/** The first values of a state's further fields, and the ones that a delete carries. */
type FurtherFields<Further> = [keyof Further] extends [never]
  ? unknown
  : { readonly initial: Further; readonly alsoDeleted: readonly (keyof Further)[] };

/**
 * @typeParam D the definition: what operators describe
 * @typeParam Further the fields of the state besides the definition
 * @typeParam Fixed fields that only a create sets
 * @typeParam AlsoDeleted the further fields that a delete carries
 * Usage: `defineResource<BeaconDefinition>()('beacon', { fields: ['name', …], … })`.
 */
export const defineResource =
  <D extends Named, Further extends object = WithoutFields, Fixed extends keyof D = never, AlsoDeleted = unknown>() =>
  <
    Type extends string,
    const F extends readonly (keyof D)[],
    Noun extends string = Capitalize<Type>,
    Singular extends string = Type,
  >(
    type: Type,
    options: Options<Noun, Singular, ResourceMeta & D & Further, D, F> & FurtherFields<Further>,
  ): Resource<
    Type,
    Noun,
    Singular,
    ResourceMeta & D & Further,
    LifecycleEvent<Noun, `${Singular}_id`, D, AlsoDeleted>,
    LifecycleCommand<Noun, D, Fixed, AlsoDeleted>
  > => {
    type State = ResourceMeta & D & Further;
    type Event = LifecycleEvent<Noun, `${Singular}_id`, D, AlsoDeleted>;
    const { sealed, indexed, compiled, objectionTo, touches } = options;
    const further = options as { readonly initial?: Further; readonly alsoDeleted?: readonly (keyof Further)[] };
    const noun = options.noun ?? ((type.charAt(0).toUpperCase() + type.slice(1)) as Noun);
    const singular = options.singular ?? (type as string as Singular);
    const fields = options.fields as readonly (keyof D & string)[];
    const shape = {
      type,
      noun,
      singular,
      fields,
      initial: { ...options.absent, ...further.initial } as Partial<State>,
      alsoDeleted: further.alsoDeleted ?? [],
    };
    const evolve = lifecycleFold<State, Event>(shape);

    const audit = lifecycleAudit(fields);
    const undo = lifecycleUndo(type, noun, singular);
    const declared = (verb: EventDeclaration<never>['audit'], back: (event: never) => Undo): unknown => ({
      audit: verb,
      undo: back,
      touches(fleet: FleetView, event: Event, context: EventContext) {
        if (touches === null) return [];
        const key: ResourceKey<State> = { type };
        const before = fleet.get(key, String(Reflect.get(event.data, `${singular}_id`)));
        const after = evolve(before, event, context);
        return before === undefined && after === undefined ? [] : touches(fleet, before, after);
      },
    });
    const events = {
      [`${noun}Created`]: declared(audit.created, undo.created),
      [`${noun}Updated`]: declared(audit.updated, undo.updated),
      [`${noun}Deleted`]: declared(audit.deleted, undo.deleted),
      [`${noun}Restored`]: declared(audit.restored, undo.restored),
    };

    return {
      type,
      noun,
      singular,
      fields,
      ...(sealed === undefined ? {} : { sealed }),
      indexed,
      compiled,
      ...(objectionTo === undefined ? {} : { objectionTo }),
      decide: lifecycleDecisions<Noun, Singular, State, D, Fixed, AlsoDeleted>(shape, options),
      evolve,
      // The compiler does not follow event names made from a noun.
      events: events as {
        readonly [T in Event['type']]: FleetEventDeclaration<Extract<Event, { type: T }>>;
      },
    };
  };
