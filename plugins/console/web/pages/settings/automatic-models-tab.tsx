import type { RoleModels } from '../../../../settings/contract.js'
import { askDaemon } from '../../data/api.js'
import { visibleText } from '../../ui/format.js'
import { Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'

const ORIGINS: { readonly [from in RoleModels['from']]: string } = {
  list: 'From the settings, in this order.',
  auto: 'What is connected, the cheapest first.',
  composer: 'What a message without a model runs on.',
  none: 'Nothing that is connected fits.',
}

/** The models that automatic jobs would run on now. */
export const AutomaticModelsTab = () => {
  const models = useQuery('settings-models', ['settings', 'accounts', 'endpoints', 'providers', 'capabilities'], () =>
    askDaemon('GET /settings/models'),
  )
  return (
    <Loaded query={models}>
      {({ roles }) => (
        <section aria-labelledby="automatic-models">
          <h2 id="automatic-models">Models of automatic jobs</h2>
          <ul class="items">
            {roles.map(({ role, from, resolved }) => (
              <Item key={role} title={role} detail={ORIGINS[from]}>
                {resolved.length > 0 && (
                  <ol>
                    {resolved.map(({ provider, model, usable, reason }) => (
                      <li key={`${provider}:${model}`} class={usable ? undefined : 'quiet'}>
                        <span class="mono">{visibleText(`${provider}:${model}`)}</span>
                        {!usable && <span> — {visibleText(reason ?? 'cannot be used now')}</span>}
                      </li>
                    ))}
                  </ol>
                )}
              </Item>
            ))}
          </ul>
        </section>
      )}
    </Loaded>
  )
}
