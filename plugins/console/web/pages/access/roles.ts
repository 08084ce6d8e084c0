import type { Role } from '../../../../../sdk/types.js'
import { refetch } from '../../data/queries.js'

/** What each role may do, in a sentence. */
export const ROLE_SENTENCES: { readonly [role in Role]: string } = {
  viewer: 'Reads conversations and files.',
  collaborator: 'Starts conversations, answers agents and edits files.',
  maintainer: 'Lands work and changes settings, secrets and connections.',
  owner: 'Decides who has access.',
}

/** Reloads the data about access. */
export const accessChanged = (): void => refetch(new Set(['members', 'sessions', 'areas']))
