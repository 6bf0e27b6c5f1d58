/** The page that edits one resource: it reads it, and leads back to it once that is saved or given up. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { sayDoneOf } from '../ui/done.js';
import { Page } from '../ui/page.js';
import { Problem } from '../ui/problem.js';
import { ResourceForm } from './resource-form.js';
import type { FormOf, ResourceFormProps, Stored, Values } from './resource-form.js';

interface EditPageProps<V extends Values, R extends Stored & { readonly name: string }> extends Pick<
  ResourceFormProps<V, R>,
  'labels' | 'role' | 'save' | 'valuesOf'
> {
  readonly query: Pick<UseQueryResult<R>, 'data' | 'error' | 'refetch'>;
  readonly text: {
    readonly editTitle: (name: string) => string;
    readonly saved: (name: string) => string;
    readonly save: string;
  };
  /** Opens the page of the resource. */
  readonly back: () => void;
  readonly children: (form: FormOf<V>, resource: R) => ReactNode;
}

export function EditPage<V extends Values, R extends Stored & { readonly name: string }>(
  props: EditPageProps<V, R>,
): ReactNode {
  const { query, text, back, children, ...form } = props;
  const { data: resource, error, refetch } = query;
  if (resource === undefined) return error && <Problem error={error} retry={() => void refetch()} />;
  return (
    <Page title={text.editTitle(resource.name)}>
      <ResourceForm<V, R>
        {...form}
        resource={resource}
        onSaved={(done) => {
          sayDoneOf(text.saved(done.data.name), done);
          back();
        }}
        onCancel={back}
        saveLabel={text.save}
      >
        {(values) => children(values, resource)}
      </ResourceForm>
    </Page>
  );
}
