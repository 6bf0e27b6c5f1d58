/** The differences of two definitions of a chain, with the names of what they refer to. */
import type { ReactNode } from 'react';
import { differencesOf } from '../shared/ui/differences.js';
import { Changes } from '../shared/ui/changes.js';
import type { Definition } from './chains.js';

/** The part of a chain that a deploy publishes. */
const definitionOf = ({ payload, hops, target }: Definition): Definition => ({ payload, hops, target });

interface DefinitionChangesProps {
  readonly before: Definition | undefined;
  readonly after: Definition;
  readonly headings?: { readonly before: string; readonly after: string };
}

export function DefinitionChanges({ before, after, headings }: DefinitionChangesProps): ReactNode {
  const changes = differencesOf(before && definitionOf(before), definitionOf(after));
  return <Changes named changes={changes} headings={headings} />;
}
