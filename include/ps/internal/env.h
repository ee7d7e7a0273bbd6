/*
 * Variables of the job: those given to Init first, then the process's own environment. What Init is given
 * before the first ps::Start also reaches Paramo's configuration. Tests: test/ps/unit_env.cc.
 */
#ifndef PS_INTERNAL_ENV_H_
#define PS_INTERNAL_ENV_H_

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ps
{
class Environment
{
  public:
    static Environment *Get()
    {
        return _GetSharedRef().get();
    }
    /* For objects that must outlive static destruction. */
    static std::shared_ptr<Environment> _GetSharedRef()
    {
        static std::shared_ptr<Environment> only(new Environment());
        return only;
    }
    /* Replaces what an earlier Init gave. Before ps::Start, on one thread. */
    static Environment *Init(const std::unordered_map<std::string, std::string> &variables)
    {
        Environment *env = Get();
        env->variables_ = variables;
        return env;
    }

    /* The variable's value, nullptr if it is not set. Valid until the next Init. */
    const char *find(const char *name) const
    {
        auto it = variables_.find(name);
        return it != variables_.end() ? it->second.c_str() : std::getenv(name);
    }

    /* What Init was given. */
    const std::unordered_map<std::string, std::string> &given() const
    {
        return variables_;
    }

  private:
    Environment()
    {
    }
    std::unordered_map<std::string, std::string> variables_;
};
} // namespace ps
#endif
