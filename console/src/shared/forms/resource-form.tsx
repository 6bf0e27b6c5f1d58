/**
 * The form of a resource, new or stored. It sends only what was changed, under the version that it began with. When somebody
 * else was faster it keeps what is typed, says who, and shows both. A refusal is shown beside the field that it names.
 * Implements the rules on forms of `docs/contract/console.md#rules`.
 */
import { Button, Fieldset, Group, Stack, Text } from '@mantine/core';
import { useForm, type UseFormReturnType } from '@mantine/form';
import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState, type ReactNode, type RefObject } from 'react';
import { flushSync } from 'react-dom';
import { newIdempotencyKey, Refusal, type Done } from '../api/client.js';
import type { Save } from '../api/crud.js';
import { queryClient } from '../live/queries.js';
import { meQuery, useMay, type Role } from '../session.js';
import { Problem } from '../ui/problem.js';
import { sentenceOf } from '../ui/sentence.js';
import { draftOf, type Draft } from './draft.js';
import { changedLabels, changedOf, closestField, fieldOf, valueIn, type Values } from './fields.js';
import { text } from './forms.text.js';
import { useLoss } from './losses.js';
import { goToFirstMistake, missingIn } from './missing.js';
import { Overtaken } from './overtaken.js';

export interface Stored {
  readonly id: string;
  readonly version: number | string;
}

export type FormOf<V> = UseFormReturnType<V>;

export interface ResourceFormProps<V extends Values, R extends Stored> {
  /** As the service has it now; absent for a new one. */
  readonly resource?: R | undefined;
  /** The fields of the resource, or of a new one. */
  readonly valuesOf: (resource: R | undefined) => V;
  /**
   * The words for each field, by its path in the API; `*` is any place of a list (`hops.*.listen_port`). A refusal that names
   * another field is shown above the buttons.
   */
  readonly labels: Readonly<Record<string, string>>;
  readonly save: (changes: Save<V>) => Promise<Done<R>>;
  readonly onSaved: (done: Done<R>) => void;
  /** Absent where there is nothing to go back to. */
  readonly onCancel?: () => void;
  readonly saveLabel: string;
  /** A second way to save, which does something more with what was saved, and shows it. */
  readonly also?: { readonly label: string; readonly run: (done: Done<R>) => Promise<void> } | undefined;
  /** What is typed is kept under this name until it is saved: only for a new resource without secrets. */
  readonly draft?: string | undefined;
  /** Who may save; others see the fields, and no button that would be refused. */
  readonly role?: Role;
  readonly children: (form: FormOf<V>) => ReactNode;
}

/**
 * The draft of the person who is signed in.
 * @param pattern makes the fields of a new resource; called only where a draft is kept
 */
function useDraft<V extends Values>(name: string | undefined, pattern: () => V): Draft<V> | undefined {
  const id = useQuery(meQuery).data?.id;
  return useMemo(
    () => (name === undefined || id === undefined ? undefined : draftOf(`${name} ${id}`, pattern())),
    // The shape of a form stays the same.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [name, id],
  );
}

/** Brings the reader to the field that the address names, as an error does. */
function useWantedField(place: RefObject<HTMLFormElement | null>, labels: Readonly<Record<string, string>>): void {
  const { field: wanted } = useSearch({ strict: false });
  useEffect(() => {
    const field = wanted === undefined ? undefined : closestField(wanted, Object.keys(labels));
    const input = place.current?.querySelector<HTMLElement>(`[data-path="${CSS.escape(field ?? '')}"]`);
    input?.focus();
    input?.scrollIntoView({ block: 'center' });
    // The fields of a form stay the same.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [wanted]);
}

/** What is typed, from which version of the resource, what became of saving it, and what to do with each. */
function useResourceForm<V extends Values, R extends Stored>(props: ResourceFormProps<V, R>) {
  const { resource, valuesOf, labels, save } = props;
  const draft = useDraft(props.draft, () => valuesOf(undefined));
  const [resumed, setResumed] = useState(() => draft?.read());
  /** What the form began with. */
  const [base, setBase] = useState(resource);
  const [idempotencyKey] = useState(newIdempotencyKey);
  const [saving, setSaving] = useState(false);
  const [refused, setRefused] = useState<Refusal>();
  const form = useForm<V>({ initialValues: resumed ?? valuesOf(resource), validateInputOnChange: false });
  const newer = resource !== undefined && resource.version !== base?.version ? resource : undefined;
  // The values that a form begins with may contain the current time.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const before = useMemo(() => valuesOf(base), [base]);
  const typed = changedOf(form.getValues(), before);
  const untouched = Object.keys(typed).length === 0;

  const values = JSON.stringify(form.getValues());
  const saved = useRef(false);
  useLoss('typed', () => {
    if (draft !== undefined || saved.current || untouched) return [];
    const names = changedLabels(form.getValues(), before, labels);
    return names.length > 0 ? names : [text.thisForm];
  });
  useEffect(() => {
    if (draft === undefined || saved.current) return;
    if (untouched) draft.drop();
    else draft.keep(form.getValues());
    // Runs whenever something is typed.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [values]);
  const startAnew = (): void => {
    form.setValues(valuesOf(undefined));
    form.clearErrors();
    setResumed(undefined);
  };

  const beginWith = (from: R, values: V): void => {
    setBase(from);
    form.setValues(values);
    form.clearErrors();
    setRefused(undefined);
  };
  // As long as nothing is typed, a newer version replaces the values.
  useEffect(() => {
    if (newer !== undefined && untouched && !saving) beginWith(newer, valuesOf(newer));
  });

  const place = useRef<HTMLFormElement>(null);
  useWantedField(place, labels);

  /** Shows them beside their fields, and brings the reader to the first. */
  const showMistakes = (mistakes: Readonly<Record<string, string>>): void => {
    flushSync(() => form.setErrors({ ...mistakes }));
    if (place.current !== null) goToFirstMistake(place.current);
  };
  const submit = async (then: (done: Done<R>) => void | Promise<void>): Promise<void> => {
    setRefused(undefined);
    const missing = place.current
      ? missingIn(place.current, (path) => valueIn(form.getValues(), path), text.missing)
      : {};
    if (Object.keys(missing).length > 0) return showMistakes(missing);
    setSaving(true);
    try {
      const done = await (base === undefined
        ? save({ values: form.getValues(), headers: { 'idempotency-key': idempotencyKey } })
        : save({ values: typed, headers: { 'if-match': `"${base.version}"` } }));
      saved.current = true;
      draft?.drop();
      // Stays in the state of saving until the form is left or made anew: otherwise its own change would come back as
      // news.
      await then(done);
    } catch (error) {
      setSaving(false);
      if (!(error instanceof Refusal)) throw error;
      const field = fieldOf(error.sentence, Object.keys(labels));
      if (field !== undefined) showMistakes({ [field]: sentenceOf(error) });
      else setRefused(error);
      // Loads the newest version, for the reader to compare.
      if (error.code === 'precondition_failed') await queryClient.invalidateQueries();
    }
  };

  return {
    form,
    place,
    submit,
    saving,
    refused,
    /** A stored one can be saved once something is typed, into its newest version. */
    cannotSave: base !== undefined && (untouched || newer !== undefined),
    isDraft: resumed !== undefined,
    startAnew,
    /** A newer version, where what is typed was typed into an older one. */
    overtakenBy: untouched || saving ? undefined : newer,
    takeTheirs: (theirs: R) => beginWith(theirs, valuesOf(theirs)),
    keepMine: (theirs: R) => beginWith(theirs, { ...valuesOf(theirs), ...typed }),
  };
}

export function ResourceForm<V extends Values, R extends Stored>(props: ResourceFormProps<V, R>): ReactNode {
  const { resource, valuesOf, labels, onSaved, onCancel, saveLabel, also, role = 'operator', children } = props;
  const maySave = useMay(role);
  const { form, place, submit, saving, refused, cannotSave, isDraft, startAnew, overtakenBy, takeTheirs, keepMine } =
    useResourceForm(props);
  // Nothing to see for those who may not add one.
  if (!maySave && resource === undefined) return <Text size="sm">{text.needsRole[role]}</Text>;
  return (
    <form
      ref={place}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void submit(onSaved);
      }}
    >
      <Stack maw={640}>
        {overtakenBy !== undefined && (
          <Overtaken
            resourceId={overtakenBy.id}
            labels={labels}
            mine={form.getValues()}
            theirs={valuesOf(overtakenBy)}
            onTakeTheirs={() => takeTheirs(overtakenBy)}
            onKeepMine={() => keepMine(overtakenBy)}
          />
        )}
        {isDraft && (
          <Group gap="xs">
            <Text size="sm">{text.draft}</Text>
            <Button size="compact-xs" variant="default" onClick={startAnew}>
              {text.startAnew}
            </Button>
          </Group>
        )}
        {!maySave && <Text size="sm">{text.needsRole[role]}</Text>}
        <Fieldset variant="unstyled" m={0} p={0} disabled={!maySave}>
          <Stack>{children(form)}</Stack>
        </Fieldset>
        {refused !== undefined && <Problem error={refused} />}
        <Group>
          {maySave && (
            <Button type="submit" loading={saving} disabled={cannotSave}>
              {saveLabel}
            </Button>
          )}
          {maySave && also !== undefined && (
            <Button variant="light" loading={saving} onClick={() => void submit(also.run)}>
              {also.label}
            </Button>
          )}
          {onCancel !== undefined && (
            <Button variant="default" onClick={onCancel}>
              {text.cancel}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
