#include "app.h"

// max(w, v): neither add nor assign.
class MaxHandle
{
  public:
    void operator()(const ps::KVMeta &meta, const ps::KVPairs<int> &data, ps::KVServer<int> *server)
    {
        ps::KVPairs<int> res;
        if (meta.pull)
            res.keys = data.keys;
        for (size_t i = 0; i < data.keys.size(); ++i) {
            int &w = store_[data.keys[i]];
            if (meta.push)
                w = std::max(w, data.vals[i]);
            if (meta.pull)
                res.vals.push_back(w);
        }
        server->Response(meta, res);
    }

  private:
    std::unordered_map<ps::Key, int> store_;
};

void Serve()
{
    if (!ps::IsServer())
        return;
    static ps::KVServer<int> *server = new ps::KVServer<int>(2);
    server->set_request_handle(MaxHandle());
    ps::RegisterExitCallback([] { delete server; });
}
