import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { faultSentence } from '../data/api.js'
import { visibleName } from './format.js'
import { Bones, FaultLine } from './page.js'

interface PictureProps {
  /** The bytes are read again when it changes. */
  readonly version: string
  readonly name: string
  readonly read: () => Promise<{ readonly data: string | Uint8Array; readonly 'content-type': string }>
}

/** A picture whose bytes the daemon gives. */
export const Picture = ({ version, name, read }: PictureProps) => {
  const url = useSignal('')
  const fault = useSignal('')
  useEffect(() => {
    let made = ''
    let gone = false
    read().then(
      ({ data, 'content-type': type }) => {
        if (gone) return
        made = URL.createObjectURL(new Blob([data as BlobPart], { type }))
        url.value = made
        fault.value = ''
      },
      error => {
        fault.value = faultSentence(error)
      },
    )
    return () => {
      gone = true
      URL.revokeObjectURL(made)
    }
  }, [version])
  if (fault.value) return <FaultLine fault={fault.value} />
  if (!url.value) return <Bones />
  return (
    <div class="picture-box" tabIndex={0} role="group" aria-label="Picture">
      <img
        src={url.value}
        alt={visibleName(name)}
        onError={() => {
          fault.value = 'This browser cannot show the picture.'
        }}
      />
    </div>
  )
}
