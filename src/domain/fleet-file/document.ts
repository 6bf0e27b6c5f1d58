/**
 * A document of the fleet as a file, read and checked by itself: what each resource should be, in the fields of requests.
 * Others of the document are referred to by ids that stand for their names; `resolve.ts` puts the ids of the fleet in
 * their place. Implements `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import type { PolicyDefinition } from '../listener-policy/policy.js';
import type { JsonObject } from '../../kernel/json.js';
import type { ResourceType } from '../fleet/resources.js';
import type { UpdateConnectivity } from '../settings/settings.js';
import type { ReferenceFields } from './naming.js';

/** What a document says of one resource. */
export interface Wanted {
  readonly type: ResourceType;
  readonly name: string;
  /** The name that it had before. */
  readonly was?: string | undefined;
  /** Stands for the resource in the references of the document, and is its id if it does not exist yet. */
  readonly id: string;
  /** All fields of its definition but the name, defaults filled in. */
  readonly fields: JsonObject;
  /** The fields that an edit sets, where what is left out is kept; all of them when absent. */
  readonly edited?: JsonObject;
  readonly deploy: boolean;
  /** The document leaves its key, or its certificate, as it is. */
  readonly keepsKey?: boolean;
  /** Where it is in the document, for sentences. */
  readonly at: readonly PropertyKey[];
}

/** A name that a document refers to. */
export interface NamedReference {
  readonly type: string;
  readonly name: string;
  /** Stands for it in fields. */
  readonly id: string;
  readonly at: readonly PropertyKey[];
}

export interface WantedPolicy {
  readonly fields: PolicyDefinition;
  readonly at: readonly PropertyKey[];
}

export interface FleetDocument {
  /** The set whose resources these are; null for resources that no set owns. */
  readonly set: string | null;
  /** In the order of the document. */
  readonly resources: readonly Wanted[];
  /** The types whose sections the document has. */
  readonly sections: ReadonlySet<ResourceType>;
  readonly policies: readonly WantedPolicy[] | undefined;
  readonly settings: Omit<UpdateConnectivity, 'type' | 'ifMatch'> | undefined;
  readonly references: readonly NamedReference[];
  readonly referenceFields: ReadonlyMap<string, ReferenceFields>;
}

/** What the caller of a plan or an apply allows. */
export interface FileFlags {
  readonly prune: boolean;
  readonly adopt: boolean;
  /** Sets from which resources are taken over. */
  readonly adoptFrom: readonly string[];
  /** How many resources may be deleted; a bound that follows from the size of the set when absent. */
  readonly maxDeletes?: number | undefined;
}

/** A mistake of a document that only the fleet shows. */
export interface DocumentMistake {
  readonly at: readonly PropertyKey[];
  readonly message: string;
}
