/** The page of one resource: its name and state, what one can do with it, what it is, and what else the type shows. */
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { nameOf, type ListedType } from '../api/crud.js';
import type { Query } from '../api/read.js';
import type { Done, Schemas } from '../api/client.js';
import type { Role } from '../session.js';
import { Facts } from './facts.js';
import { Page } from './page.js';
import { NotYet } from './page-skeleton.js';
import { ResourceActions } from './resource-actions.js';
import { pagesOf } from './resource-link.js';
import { Section } from './section.js';
import { text } from './ui.text.js';
import { When } from './when.js';

type Resource = ({ readonly name: string } | { readonly username: string }) & {
  readonly id: string;
  readonly managed_by?: string | null;
  readonly created_at: string;
  readonly updated_at: string;
};

/** Reads the resource that the address names, and shows it. @param one how it is read */
export function resourcePage<R>(
  { one }: { readonly one: (id: string) => Query<R> },
  Shown: (props: { readonly resource: R }) => ReactNode,
): () => ReactNode {
  return function OnePage() {
    const { id = '' } = useParams({ strict: false });
    const { data: resource, error, refetch } = useQuery(one(id));
    // It was deleted, perhaps by the undo of its creation, so its last state is of no use.
    const isGone = error?.status === 404;
    if (resource === undefined || isGone) return <NotYet error={error} refetch={isGone ? undefined : refetch} />;
    return <Shown key={id} resource={resource} />;
  };
}

interface ResourcePageProps {
  readonly of: { readonly type: ListedType; readonly remove: (id: string) => Promise<Done<unknown>> };
  readonly resource: Resource;
  /** Beside the name, such as a state. */
  readonly aside?: ReactNode;
  /** Who may change it. */
  readonly role?: Role;
  /** The main actions of those who may. */
  readonly actions?: ReactNode;
  /** `Menu.Item`s with their further actions. */
  readonly more?: ReactNode;
  /** Below the name: an address to copy, a path. */
  readonly line?: ReactNode;
  /** What a delete does, or when it is refused; absent where it cannot be deleted. */
  readonly removeMeaning?: string;
  /** A revert does not bring it back. */
  readonly removedForGood?: true;
  /** What stands in the way of a delete. */
  readonly usedBy?: readonly Schemas['Referrer'][];
  /** Above everything. */
  readonly notice?: ReactNode;
  readonly facts?: Readonly<Record<string, ReactNode>>;
  readonly children?: ReactNode;
}

export function ResourcePage(props: ResourcePageProps): ReactNode {
  const {
    of,
    resource,
    aside,
    role,
    actions,
    more,
    line,
    removeMeaning,
    removedForGood,
    usedBy,
    notice,
    facts,
    children,
  } = props;
  const { id } = resource;
  const name = nameOf(resource);
  const pages = pagesOf(of.type);
  return (
    <Page
      title={name}
      aside={aside}
      line={line}
      actions={
        <ResourceActions
          type={of.type}
          id={id}
          name={name}
          edit={pages.edit?.(id)}
          remove={
            removeMeaning === undefined
              ? undefined
              : {
                  run: () => of.remove(id),
                  meaning: removeMeaning,
                  list: pages.list,
                  usedBy,
                  undoable: removedForGood !== true,
                }
          }
          role={role}
          more={more}
        >
          {actions}
        </ResourceActions>
      }
    >
      {notice}
      {facts !== undefined && <Details resource={resource} facts={facts} />}
      {children}
    </Page>
  );
}

interface DetailsProps {
  readonly resource: Resource;
  readonly facts: Readonly<Record<string, ReactNode>>;
}

/** What it is, and what every resource has. */
export function Details({ resource, facts }: DetailsProps): ReactNode {
  const { managed_by: managedBy, created_at: created, updated_at: updated } = resource;
  return (
    <Section title={text.details}>
      <Facts
        facts={{
          ...facts,
          ...(managedBy !== undefined && { [text.managedBy]: managedBy }),
          [text.created]: <When at={created} />,
          [text.updated]: <When at={updated} />,
        }}
      />
    </Section>
  );
}
