import { signal } from '@preact/signals-core'
import { keepOwn, readOwn } from './own-storage.js'

const marks = signal<{ readonly [conversation: string]: ReadonlySet<string> }>({})

/** The files of a conversation that the person marked as viewed in this browser. */
export const viewedOf = (conversation: string): ReadonlySet<string> => {
  return marks.value[conversation] ?? new Set(JSON.parse(readOwn(`viewed.${conversation}`) || '[]') as string[])
}

/** Marks a file as viewed, or takes the mark away. */
export const markViewed = (conversation: string, place: string, viewed: boolean): void => {
  const next = new Set(viewedOf(conversation))
  if (viewed) next.add(place)
  else next.delete(place)
  marks.value = { ...marks.value, [conversation]: next }
  keepOwn(`viewed.${conversation}`, JSON.stringify([...next]))
}
