import { useSignal } from '@preact/signals'
import type { SkillOrigin, SkillSummary } from '../../../../skills/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import { fragmentOf } from '../../data/route.js'
import { person } from '../../data/session/session.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { countText, sizeTextOf, visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { useQuery } from '../../ui/query.js'
import { Markdown } from '../../ui/markdown.js'
import { SearchField } from '../../ui/search-field.js'
import { reaches, type PageProps } from '../registry.js'
import { ImportForm, SkillForm } from './skill-forms.js'

const ORIGINS: { readonly [origin in SkillOrigin]: string } = {
  own: 'written here',
  builtin: 'built in',
  plugin: 'of a plugin',
  persona: 'of the persona',
  extension: 'of the extension',
  capability: 'of the connection',
  dropped: 'a folder of the workspace',
}

const changed = () => refetch(new Set(['skills', 'settings']))

const SkillRow = ({ skill, maintains }: { skill: SkillSummary; maintains: boolean }) => {
  const { id, name, description, origin, owner, enabled, switchable, editable, removable, tokens, files } = skill
  const action = useAction()
  return (
    <Item
      title={<a href={fragmentOf('skills', id)}>{visibleName(name)}</a>}
      state={enabled ? ['good', 'On'] : ['', 'Off']}
      detail={
        <>
          <div dir="auto">{visibleName(description) || 'It does not say when to use it.'}</div>
          <div>
            {ORIGINS[origin] ?? origin} {owner !== undefined && visibleName(owner)} · about {countText(tokens)} tokens
            {files > 0 && ` · ${countText(files)} ${files === 1 ? 'file' : 'files'} beside it`}
          </div>
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {maintains && switchable && (
        <ActionButton
          action={action}
          work={async () => {
            await askDaemon('POST /skills/enabled', { id, enabled: !enabled })
            changed()
          }}
          about={name}
        >
          {enabled ? 'Switch off' : 'Switch on'}
        </ActionButton>
      )}
      {maintains && editable && (
        <FormButton label="Edit" about={name} form={close => <SkillForm skill={skill} close={close} />} />
      )}
      {maintains && removable && (
        <AskButton
          label="Remove"
          about={name}
          title={`Remove ${name}?`}
          work={async () => {
            await askDaemon('POST /skills/remove', { name })
            changed()
          }}
        >
          <p>Its folder is deleted with everything in it.</p>
        </AskButton>
      )}
    </Item>
  )
}

const SkillText = ({ id }: { id: string }) => {
  const skill = useQuery(`skill ${id}`, ['skills'], () => askDaemon('GET /skills/read', { id }))
  return (
    <PageFrame
      title={visibleName(skill.data?.name ?? id)}
      tools={
        <a class="button" href={fragmentOf('skills')}>
          All skills
        </a>
      }
    >
      <Loaded query={skill}>
        {({ description, body, files }) => (
          <>
            <p dir="auto">{visibleName(description)}</p>
            <section aria-labelledby="text-heading">
              <h2 id="text-heading">What it says</h2>
              <Markdown text={body} />
            </section>
            {files.length > 0 && (
              <section aria-labelledby="files-heading">
                <h2 id="files-heading">Files beside it</h2>
                <ul class="plain-list">
                  {files.map(({ path, size }) => (
                    <li key={path}>
                      <span class="mono">{visibleName(path)}</span> {sizeTextOf(size)}
                    </li>
                  ))}
                </ul>
              </section>
            )}
          </>
        )}
      </Loaded>
    </PageFrame>
  )
}

const List = () => {
  const list = useQuery('skills', ['skills', 'settings', 'personas', 'extensions'], () => askDaemon('GET /skills'))
  const maintains = reaches(person.value?.role, 'maintainer')
  const words = useSignal('')
  return (
    <PageFrame title="Skills">
      <section aria-labelledby="skills-heading">
        <div class="section-head">
          <h2 id="skills-heading">What agents know how to do</h2>
          {maintains && (
            <>
              <FormButton label="Import" about="skills" form={close => <ImportForm close={close} />} />
              <FormButton label="Write a skill" primary form={close => <SkillForm close={close} />} />
            </>
          )}
        </div>
        <Loaded query={list}>
          {skills =>
            skills.length === 0 ? (
              <p class="quiet">Skills are instructions that agents read when they need them. Write or import one.</p>
            ) : (
              <>
                <SearchField label="Search skills" value={words} />
                <ul class="items">
                  {skills
                    .filter(({ name, description }) =>
                      `${name} ${description}`.toLowerCase().includes(words.value.toLowerCase()),
                    )
                    .map(skill => (
                      <SkillRow key={skill.id} skill={skill} maintains={maintains} />
                    ))}
                </ul>
              </>
            )
          }
        </Loaded>
      </section>
    </PageFrame>
  )
}

/** Every skill, where it comes from, and whether turns have it. */
export const SkillsPage = ({ rest }: PageProps) =>
  rest.length > 0 ? <SkillText key={rest.join('/')} id={rest.join('/')} /> : <List />
