/** The command palette (Ctrl-K): any page, any action that the role allows, and any resource by its name. */
import '@mantine/spotlight/styles.css';
import { Spotlight, spotlight } from '@mantine/spotlight';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate, type LinkProps } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { typeNames } from '../shared/ui/resource-link.js';
import { actions, pages } from './navigation.js';
import { findResources } from './palette-search.js';
import { text } from './shell.text.js';

const typingMs = 120;

export function Palette({ button }: { readonly button: (open: () => void) => ReactNode }): ReactNode {
  const [query, setQuery] = useState('');
  const [wanted] = useDebouncedValue(query.trim(), typingMs);
  const navigate = useNavigate();
  const mayOperate = useMay('operator');
  const mayAdminister = useMay('admin');
  const { data: found = [] } = useQuery({
    queryKey: ['palette', wanted, mayAdminister],
    queryFn: ({ signal }) => findResources(wanted, mayAdminister, signal),
    enabled: wanted !== '',
    placeholderData: keepPreviousData,
    meta: { follows: 'all' },
  });
  const matching = (list: typeof pages): typeof pages =>
    list
      .filter(({ role }) => role === undefined || (role === 'admin' ? mayAdminister : mayOperate))
      .filter(({ label }) => label.toLowerCase().includes(query.trim().toLowerCase()));
  const go = (target: Pick<LinkProps, 'to' | 'params'>): void => void navigate(target);
  const resources = wanted === '' ? [] : found;
  const nothing = resources.length + matching(pages).length + matching(actions).length === 0;
  return (
    <>
      {button(spotlight.open)}
      <Spotlight.Root
        query={query}
        onQueryChange={setQuery}
        shortcut="mod + K"
        scrollable
        maxHeight={420}
        attributes={{ content: { 'aria-label': text.search } }}
        styles={{ actionDescription: { opacity: 1 } }}
      >
        <Spotlight.Search placeholder={text.searchHint} aria-label={text.searchHint} />
        <Spotlight.ActionsList>
          {nothing && <Spotlight.Empty>{text.nothingFound}</Spotlight.Empty>}
          {resources.map(({ id, name, type, link }) => (
            <Spotlight.Action key={id} label={name} description={typeNames[type]} onClick={() => go(link)} />
          ))}
          {matching(pages).map(({ to, label }) => (
            <Spotlight.Action key={to} label={label} description={text.goTo} onClick={() => go({ to })} />
          ))}
          {matching(actions).map(({ to, label }) => (
            <Spotlight.Action key={to} label={label} description={text.actions} onClick={() => go({ to })} />
          ))}
        </Spotlight.ActionsList>
      </Spotlight.Root>
    </>
  );
}
