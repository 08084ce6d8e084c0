import { namesOf } from '../../../sdk/node/programs/library.js'

/** Loads the tar library when it is first used. */
export const tar = async () => namesOf(await import('tar-stream'))
