/** A link to a resource that is known by its id alone; it looks up the name. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { isListed, type ListedType } from '../api/crud.js';
import { namedQuery } from '../named.js';
import { ResourceLink } from './resource-link.js';

interface NamedLinkProps {
  /** For a type that has no names, the id is shown. */
  readonly type: string;
  readonly id: string;
}

export function NamedLink({ type, id }: NamedLinkProps): ReactNode {
  return isListed(type) ? <Found type={type} id={id} /> : <ResourceLink type={type} id={id} name={null} />;
}

function Found({ type, id }: { readonly type: ListedType; readonly id: string }): ReactNode {
  const { data } = useQuery(namedQuery(type, id));
  return <ResourceLink type={type} id={id} name={data?.name ?? null} />;
}
