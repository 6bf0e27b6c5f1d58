/** Makes the pages that add and edit a resource: one form, which leads to the page of the resource once it is saved. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Done } from '../api/client.js';
import { nameOf, type ListedType, type Save } from '../api/crud.js';
import type { Query } from '../api/read.js';
import { keepForItsPage } from '../just-made.js';
import { sayDone, sayDoneOf, sayRefused } from '../ui/done.js';
import { Page } from '../ui/page.js';
import { Problem } from '../ui/problem.js';
import { text as uiText } from '../ui/ui.text.js';
import { NotYet } from '../ui/page-skeleton.js';
import { pagesOf, typeNames } from '../ui/resource-link.js';
import type { Values } from './fields.js';
import { text as shared } from './forms.text.js';
import { ResourceForm, type FormOf, type ResourceFormProps, type Stored } from './resource-form.js';

type Named = Stored & ({ readonly name: string } | { readonly username: string });

export interface FieldsProps<V, R> {
  readonly form: FormOf<V>;
  /** Absent for a new one. */
  readonly resource?: R;
}

interface FormPage<V extends Values, R extends Named> extends Pick<ResourceFormProps<V, R>, 'role'> {
  /** As those of `ResourceForm`; every resource has a name. */
  readonly labels: ResourceFormProps<V, R>['labels'];
  readonly type: ListedType;
  readonly valuesOf: (resource: R | undefined) => V;
  readonly Fields: (props: FieldsProps<V, R>) => ReactNode;
  /** Its page shows what only the answer has, such as a secret: see `useJustMade`. */
  readonly withSecret?: true;
}

interface NewPage<V extends Values, R extends Named, M extends R> extends FormPage<V, R> {
  readonly create: (save: Save<V>) => Promise<Done<M>>;
  /** Of the page and its button. */
  readonly title: string;
  /** A second way to save, which also leads to the page of the resource. @throws Refusal of the additional step */
  readonly also?: { readonly label: string; readonly run: (made: M) => Promise<void> };
  /** Kept in the browser until it is saved. */
  readonly draft?: string;
  /** Whether a revert takes it back. */
  readonly undoable?: boolean;
}

/** The page that adds one. */
export function newPage<V extends Values, R extends Named, M extends R = R>(page: NewPage<V, R, M>): () => ReactNode {
  const { type, create, title, valuesOf, labels, role, Fields, withSecret, undoable = true, also, draft } = page;
  const pages = pagesOf(type);
  return function NewPage() {
    const navigate = useNavigate();
    const show = (made: M): void => {
      if (withSecret) keepForItsPage(made);
      void navigate(pages.one(made.id));
    };
    return (
      <Page title={title}>
        <ResourceForm<V, M>
          valuesOf={valuesOf}
          labels={{ name: uiText.name, ...labels }}
          role={role}
          save={create}
          onSaved={(done) => {
            const said = shared.added(typeNames[type] ?? type, nameOf(done.data));
            if (undoable) sayDoneOf(said, done);
            else sayDone(said);
            show(done.data);
          }}
          onCancel={() => void navigate(pages.list)}
          saveLabel={title}
          draft={draft}
          also={
            also && {
              label: also.label,
              run: async ({ data }) => {
                try {
                  await also.run(data);
                } catch (error) {
                  // The resource is added: its page shows what is not done yet, and offers it.
                  sayRefused(error);
                }
                show(data);
              },
            }
          }
        >
          {(form) => <Fields form={form} />}
        </ResourceForm>
      </Page>
    );
  };
}

interface EditPage<V extends Values, R extends Named> extends FormPage<V, R> {
  readonly one: (id: string) => Query<R>;
  readonly update: (id: string, save: Save<V>) => Promise<Done<R>>;
}

/** The page that edits the one that the address names. */
export function editPage<V extends Values, R extends Named>(page: EditPage<V, R>): () => ReactNode {
  const { type, one, update, valuesOf, labels, role, Fields, withSecret } = page;
  return function EditPage() {
    const { id = '' } = useParams({ strict: false });
    const navigate = useNavigate();
    const { data: resource, error, refetch } = useQuery(one(id));
    if (resource === undefined) return <NotYet error={error} refetch={refetch} />;
    const back = (): void => void navigate(pagesOf(type).one(id));
    return (
      <Page title={shared.edit(nameOf(resource))}>
        {/* Deleted meanwhile: what is typed stays, to be copied. */}
        {error?.status === 404 && <Problem error={error} />}
        <ResourceForm<V, R>
          key={id}
          resource={resource}
          valuesOf={valuesOf}
          labels={{ name: uiText.name, ...labels }}
          role={role}
          save={(changes) => update(id, changes)}
          onSaved={(done) => {
            sayDoneOf(shared.saved(typeNames[type] ?? type, nameOf(done.data)), done);
            if (withSecret) keepForItsPage(done.data);
            back();
          }}
          onCancel={back}
          saveLabel={shared.save}
        >
          {(form) => <Fields form={form} resource={resource} />}
        </ResourceForm>
      </Page>
    );
  };
}
