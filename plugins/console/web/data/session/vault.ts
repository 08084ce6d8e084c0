const DATABASE = 'sandbox'
const STORE = 'session'
const KEY = 'session'

/** A session as stored in this browser. */
export interface KeptSession {
  readonly token: string
  readonly expiresAt: number
}

const open = (): Promise<IDBDatabase> =>
  new Promise((resolve, reject) => {
    const asked = indexedDB.open(DATABASE, 1)
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE)
    asked.onsuccess = () => resolve(asked.result)
    asked.onerror = () => reject(asked.error)
  })

const within = async <T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> => {
  const database = await open()
  try {
    return await new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(STORE, mode)
      const asked = use(transaction.objectStore(STORE))
      transaction.oncomplete = () => resolve(asked.result)
      transaction.onerror = () => reject(transaction.error)
      transaction.onabort = () => reject(transaction.error)
    })
  } finally {
    database.close()
  }
}

/** The kept session; undefined when there is none, or when the browser keeps nothing for this page. */
export const readSession = async (): Promise<KeptSession | undefined> =>
  within('readonly', store => store.get(KEY) as IDBRequest<KeptSession | undefined>).catch(() => undefined)

/** Keeps the session; false when the browser keeps nothing for this page. */
export const keepSession = (session: KeptSession): Promise<boolean> =>
  within('readwrite', store => store.put(session, KEY)).then(
    () => true,
    () => false,
  )

/** Deletes the session. */
export const dropSession = (): Promise<void> =>
  within('readwrite', store => store.delete(KEY)).then(
    () => {},
    () => {},
  )
