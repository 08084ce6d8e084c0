import { keepOwn, readOwn } from './own-storage.js'

/** The unsent or unsaved text of a place: the composer of a conversation, a file, the message of a commit. */
export const draftOf = (place: string): string => readOwn(`draft.${place}`)

/** Keeps a draft, an empty one is deleted; says whether it survives a reload. */
export const keepDraft = (place: string, text: string): boolean => keepOwn(`draft.${place}`, text)
