/**
 * The command palette (Ctrl-K): any page, any action that the role allows, and any resource by its name, address or
 * port. The first result is chosen; Enter takes it, even if pressed before the answer came.
 */
import { Text, TextInput, useMantineColorScheme } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate, type LinkProps } from '@tanstack/react-router';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { useMay, type Role } from '../shared/session.js';
import { sayRefused } from '../shared/ui/done.js';
import { Problem } from '../shared/ui/problem.js';
import { actions, pages } from './navigation.js';
import { otherActions } from './palette-actions.js';
import { inOrder, wantedOf, type Item } from './palette-items.js';
import classes from './palette.module.css';
import { find } from './palette-search.js';
import { text } from './shell.text.js';

const typingMs = 120;

/** Items that need no answer from the service, named as in the menu. */
function useOwn(go: (target: Pick<LinkProps, 'to' | 'params' | 'search'>) => void, type: (words: string) => void) {
  const mayOperate = useMay('operator');
  const mayAdminister = useMay('admin');
  const { setColorScheme } = useMantineColorScheme();
  const may = ({ role = 'viewer' }: { readonly role?: Role }): boolean =>
    role === 'viewer' || (role === 'admin' ? mayAdminister : mayOperate);
  const places = (list: typeof pages, hint: string): readonly Item[] =>
    list.filter(may).map(({ to, label }) => ({ key: to, label, hint, run: () => go({ to }) }));
  const typing = (['deploy', 'issue', 'rotate'] as const).map((verb): Item => {
    return {
      key: verb,
      label: text.verbs[verb]('…'),
      hint: text.actions,
      staysOpen: true,
      run: () => type(`${verb} `),
    };
  });
  const looks = (['dark', 'light', 'auto'] as const).map((scheme): Item => {
    return { key: scheme, label: text.looks[scheme], hint: text.actions, run: () => setColorScheme(scheme) };
  });
  const others = otherActions.filter(may).map(({ label, run }): Item => {
    return {
      key: label,
      label,
      hint: text.actions,
      async run() {
        const target = await run();
        if (target !== undefined) go(target);
      },
    };
  });
  return [
    ...places(pages, text.goTo),
    ...places(actions, text.actions),
    ...(mayOperate ? typing : []),
    ...others,
    ...looks,
  ];
}

/** The content of the dialog of `palette-button.tsx`. */
export function Palette({ onDone }: { readonly onDone: () => void }): ReactNode {
  const field = useRef<HTMLInputElement>(null);
  // It may load after the dialog has looked for a field to focus.
  useEffect(() => field.current?.focus(), []);
  const [typed, type] = useState('');
  const [at, choose] = useState(0);
  /** Enter was pressed before the answer to the typed text came. */
  const isAwaited = useRef(false);
  const [asked] = useDebouncedValue(typed, typingMs);
  const navigate = useNavigate();
  const isAdmin = useMay('admin');
  const wanted = wantedOf(asked);
  const enabled = wanted.verb !== undefined || wanted.q !== '';
  const {
    data: found = [],
    error,
    isPlaceholderData,
    isPending,
  } = useQuery({
    queryKey: ['palette', wanted, isAdmin],
    queryFn: ({ signal }) => find(wanted, isAdmin, signal),
    enabled,
    placeholderData: keepPreviousData,
    meta: { follows: 'all' },
  });
  const go = (target: Pick<LinkProps, 'to' | 'params' | 'search'>): void => void navigate(target);
  const change = (words: string): void => {
    type(words);
    choose(0);
    isAwaited.current = false;
  };
  const own = useOwn(go, change);
  const resources = enabled
    ? found.map(({ key, label, hint, link }): Item => ({ key, label, hint, run: () => go(link) }))
    : [];
  const items = wanted.verb === undefined ? inOrder(typed, own, resources) : resources;
  const chosen = Math.min(at, items.length - 1);
  const isSettled = asked === typed && !isPlaceholderData && !(enabled && isPending);
  const take = ({ run, staysOpen = false }: Item): void => {
    if (!staysOpen) onDone();
    Promise.resolve(run()).catch((error: unknown) => sayRefused(error));
  };
  useEffect(() => {
    if (!isAwaited.current || !isSettled) return;
    isAwaited.current = false;
    const [first] = items;
    if (first !== undefined) take(first);
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && items.length > 0) choose((chosen + step + items.length) % items.length);
    else if (event.key === 'Enter' && !isSettled) isAwaited.current = true;
    else if (event.key === 'Enter' && items[chosen] !== undefined) take(items[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <TextInput
        size="md"
        variant="unstyled"
        px="md"
        data-autofocus
        ref={field}
        role="combobox"
        aria-label={text.searchHint}
        aria-expanded="true"
        aria-controls="palette"
        aria-activedescendant={items.length === 0 ? undefined : `palette-${chosen}`}
        placeholder={text.searchHint}
        value={typed}
        onChange={({ currentTarget }) => change(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div role="listbox" id="palette" aria-label={text.search} aria-busy={!isSettled} className={classes.list}>
        {items.map((item, index) => (
          <Option key={item.key} item={item} index={index} isChosen={index === chosen} onTake={take} />
        ))}
      </div>
      {error !== null && isSettled && <Problem error={error} />}
      {error === null && items.length === 0 && isSettled && (
        <Text size="sm" p="md" pt={0} role="status">
          {text.nothingFound}
        </Text>
      )}
    </>
  );
}

interface OptionProps {
  readonly item: Item;
  readonly index: number;
  readonly isChosen: boolean;
  readonly onTake: (item: Item) => void;
}

/** The field keeps the focus and handles the keys. */
function Option({ item, index, isChosen, onTake }: OptionProps): ReactNode {
  return (
    <div
      role="option"
      id={`palette-${index}`}
      tabIndex={-1}
      aria-selected={isChosen}
      className={classes.option}
      ref={isChosen ? (option) => option?.scrollIntoView({ block: 'nearest' }) : undefined}
      onMouseDown={(event) => event.preventDefault()}
      onClick={() => onTake(item)}
      onKeyDown={undefined}
    >
      <span className={classes.label} title={item.label}>
        {item.label}
      </span>
      <span className={classes.hint}>{item.hint}</span>
    </div>
  );
}
