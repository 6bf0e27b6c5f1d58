/** An audit entry in a sentence, whose resource leads to its page. */
import { Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { ResourceLink } from '../ui/resource-link.js';
import { entryWords, type Entry } from './entry-words.js';

export function EntrySentence({ entry }: { readonly entry: Entry }): ReactNode {
  const { who, did, noun, name, detail } = entryWords(entry);
  const { type, id } = entry.resource;
  return (
    <Text span size="sm" style={{ overflowWrap: 'anywhere' }}>
      <b>{who}</b> {did} {noun !== null && (name === null ? <ResourceLink type={type} id={id} name={noun} /> : noun)}{' '}
      {name !== null && <ResourceLink type={type} id={id} name={name} />}
      {detail !== null && `: ${detail}`}
    </Text>
  );
}
