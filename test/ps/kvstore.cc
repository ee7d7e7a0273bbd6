// For test_kvstore.sh: workers and servers in the manner of MXNet 1.x' kvstore_dist, without its arrays. A server's
// main thread applies what arrives, as MXNet's does for updaters in Python; handles hand it over and wait. argv[1]: a
// fifo, from which each worker reads a byte after its first round. argv[2]: rounds. argv[3]: sync (a push is answered
// when all workers' have come), async, or byteps (as BytePS' server: a push is answered at once, a pull when all
// workers' pushes have come, by another thread). argv[4]: dense; rows (row-sparse: the first key is repeated, lens of
// answers count floats); bits (2-bit compression: two keys, of which the first is larger). A worker that takes a dead
// one's place continues after its first round. Each worker's push adds 1 to each value, and the end is checked.
#include <fcntl.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <map>

#include "event.h"
#include "expect.h"
#include "ps/ps.h"

using namespace ps;

enum Command { STOP = 1, SYNC = 2, BYTEPS = 3 };
enum Kind { DENSE = 0, ROWS = 1, BITS = 2 };
enum : size_t { KEY = 3, ROWS_EACH = 8, UNIT = 4, SIZE = ROWS_EACH * UNIT }; /* on each server */

static const int ALL = kScheduler + kServerGroup + kWorkerGroup;

/* Runs functions on the thread in Start, one after the other. */
class Executor
{
  public:
    void Start()
    {
        for (;;) {
            std::unique_lock<std::mutex> lock(mu_);
            cond_.wait(lock, [this] { return !queue_.empty(); });
            std::packaged_task<void()> task = std::move(queue_.front());
            queue_.pop_front();
            const bool over = stops_ && queue_.empty();
            lock.unlock();
            task();
            if (over)
                return;
        }
    }
    /* Returns when f has run. */
    void Exec(const std::function<void()> &f, bool stops = false)
    {
        std::packaged_task<void()> task(f);
        std::future<void> done = task.get_future();
        {
            std::lock_guard<std::mutex> lock(mu_);
            queue_.push_back(std::move(task));
            stops_ = stops_ || stops;
            cond_.notify_one();
        }
        done.wait();
    }

  private:
    std::mutex mu_;
    std::condition_variable cond_;
    std::deque<std::packaged_task<void()>> queue_;
    bool stops_ = false;
};

class Server
{
  public:
    Server() : kv_(new KVServer<char>(0))
    {
        static_cast<SimpleApp *>(kv_.get())->set_request_handle(
            [this](const SimpleData &req, SimpleApp *app) {
                if (req.head == STOP)
                    executor_.Exec([] {}, true);
                if (req.head != STOP)
                    mode_ = req.head;
                app->Response(req);
            });
        kv_->set_request_handle([this](const KVMeta &meta, const KVPairs<char> &data, KVServer<char> *) {
            if (meta.push)
                Push(meta, data);
            else
                Pull(meta, data);
        });
    }
    void Run()
    {
        executor_.Start();
    }

  private:
    Key Decode(Key key) const
    {
        return key - Postoffice::Get()->GetServerKeyRanges()[static_cast<size_t>(MyRank())].begin();
    }
    void Push(const KVMeta &meta, const KVPairs<char> &data)
    {
        CHECK_EQ(Decode(data.keys[meta.cmd == BITS ? 1 : 0]), KEY);
        if (store_.empty()) {
            store_.assign(SIZE, 0);
            merged_.assign(SIZE, 0);
            kv_->Response(meta);
            return;
        }
        const float *floats = reinterpret_cast<const float *>(data.vals.data());
        for (size_t i = 0; meta.cmd == DENSE && i < SIZE; i++)
            merged_[i] += floats[i];
        for (size_t k = 1; meta.cmd == ROWS && k < data.keys.size(); k++)
            for (size_t i = 0; i < UNIT; i++)
                merged_[(Decode(data.keys[k]) - KEY) * UNIT + i] += *floats++;
        for (size_t i = 0; meta.cmd == BITS && i < Decode(data.keys[0]); i++) {
            const int two = data.vals[i / 4] >> i % 4 * 2 & 3;
            merged_[i] += two == 3 ? 1 : two == 2 ? -1 : 0;
        }
        pushed_.push_back(meta);
        if (mode_ == BYTEPS)
            kv_->Response(meta);
        if (mode_ != 0 && pushed_.size() < static_cast<size_t>(NumWorkers()))
            return;
        executor_.Exec([this] {
            for (size_t i = 0; i < SIZE; i++)
                store_[i] += merged_[i];
        });
        merged_.assign(SIZE, 0);
        for (const KVMeta &one : pushed_)
            if (mode_ != BYTEPS)
                kv_->Response(one);
        pushed_.clear();
        rounds_++;
        std::vector<Held> held;
        held.swap(held_);
        for (const Held &pull : held)
            Pull(pull.meta, pull.data);
    }
    void Pull(const KVMeta &meta, const KVPairs<char> &data)
    {
        if (mode_ == BYTEPS && answered_[meta.sender] == rounds_) {
            held_.push_back({meta, data});
            return;
        }
        answered_[meta.sender]++;
        if (mode_ == BYTEPS)
            executor_.Exec([&] { Answer(meta, data); });
        else
            Answer(meta, data);
    }
    void Answer(const KVMeta &meta, const KVPairs<char> &data)
    {
        KVPairs<char> res;
        res.keys = data.keys;
        res.vals.CopyFrom(reinterpret_cast<const char *>(store_.data()), SIZE * sizeof(float));
        res.lens =
            SArray<int>(data.keys.size(), static_cast<int>(meta.cmd == ROWS ? UNIT : SIZE * sizeof(float)));
        if (meta.cmd == ROWS)
            res.lens[0] = 0;
        kv_->Response(meta, res);
    }

    std::unique_ptr<KVServer<char>> kv_;
    Executor executor_;
    struct Held {
        KVMeta meta;
        KVPairs<char> data;
    };
    int mode_ = 0; /* 0, SYNC or BYTEPS */
    std::vector<float> store_, merged_;
    std::vector<KVMeta> pushed_;
    int rounds_ = 0;
    std::map<int, int> answered_; /* pulls, by sender */
    std::vector<Held> held_;
};

class Worker
{
  public:
    explicit Worker(Kind kind) : kind_(kind), kv_(0, 0)
    {
        const size_t servers = static_cast<size_t>(NumServers());
        pulled_.resize(servers * SIZE);
        floats_.assign(servers * SIZE, 1);
        bits_.assign(servers * SIZE / 4, static_cast<char>(0xff));
        for (const Range &range : Postoffice::Get()->GetServerKeyRanges()) {
            const Key key = range.begin() + KEY;
            if (kind_ == BITS)
                Add(&push_keys_, &push_lens_, range.begin() + SIZE, 0);
            Add(&push_keys_, &push_lens_, key,
                kind_ == ROWS   ? 0
                : kind_ == BITS ? SIZE / 4
                                : SIZE * sizeof(float));
            Add(&pull_keys_, &pull_lens_, key, kind_ == ROWS ? 0 : SIZE * sizeof(float));
            for (size_t row = 0; kind_ == ROWS && row < ROWS_EACH; row++) {
                Add(&push_keys_, &push_lens_, key + row, UNIT * sizeof(float));
                Add(&pull_keys_, &pull_lens_, key + row, UNIT * sizeof(float));
            }
        }
    }
    void Push()
    {
        char *what = kind_ == BITS ? bits_.data() : reinterpret_cast<char *>(floats_.data());
        const size_t bytes = kind_ == BITS ? bits_.size() : floats_.size() * sizeof(float);
        Event done("the callback of a push");
        kv_.ZPush(push_keys_, SArray<char>(what, bytes, false), push_lens_, kind_, [&done] { done.Set(); });
        done.Wait();
    }
    /* The first value. Are they all the same? Not while others push without waiting for each other: one server may have
     * a push that another has not. */
    float Pull(bool all_same)
    {
        Event done("the callback of a pull");
        auto vals =
            new SArray<char>(reinterpret_cast<char *>(pulled_.data()), pulled_.size() * sizeof(float), false);
        SArray<int> lens;
        lens.CopyFrom(pull_lens_);
        kv_.ZPull(pull_keys_, vals, &lens, kind_, [&done, vals] {
            delete vals;
            done.Set();
        });
        done.Wait();
        for (float value : pulled_)
            EXPECT(!all_same || value == pulled_[0]);
        return pulled_[0];
    }
    void Tell(Command command)
    {
        kv_.Wait(kv_.Request(command, "", kServerGroup));
    }

  private:
    static void Add(SArray<Key> *keys, SArray<int> *lens, Key key, size_t len)
    {
        keys->push_back(key);
        lens->push_back(static_cast<int>(len));
    }

    const Kind kind_;
    KVWorker<char> kv_;
    SArray<Key> push_keys_, pull_keys_;
    SArray<int> push_lens_, pull_lens_;
    std::vector<float> floats_, pulled_;
    std::vector<char> bits_;
};

static void ReadByte(const char *path)
{
    char byte = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, &byte, 1) == 1) << path;
    close(fd);
}

static int Work(const char *go, int rounds, const std::string &mode, Kind kind)
{
    Worker worker(kind);
    StartAsync(0);
    const bool recovers = Postoffice::Get()->is_recovery() != 0;
    if (recovers) {
        std::cout << "is_recovery, rank " << MyRank() << std::endl;
    } else {
        Postoffice::Get()->Barrier(0, ALL);
        if (mode != "async" && MyRank() == 0)
            worker.Tell(mode == "sync" ? SYNC : BYTEPS);
        if (MyRank() == 0)
            worker.Push(); /* makes the values */
        Postoffice::Get()->Barrier(0, kWorkerGroup);
    }
    float sum = 0;
    for (int i = recovers ? 1 : 0; i < rounds; i++) {
        worker.Push();
        sum = worker.Pull(mode != "async");
        if (i == 0) {
            std::cout << "works" << std::endl;
            ReadByte(go);
        }
    }
    Postoffice::Get()->Barrier(0, kWorkerGroup);
    if (mode != "byteps")
        sum = worker.Pull(true);
    EXPECT(sum == static_cast<float>(rounds * NumWorkers()));
    std::cout << "finished with " << sum << std::endl;
    Postoffice::Get()->Barrier(0, kWorkerGroup);
    if (MyRank() == 0)
        worker.Tell(STOP);
    Finalize(0, true);
    return Failures("kvstore");
}

int main(int argc, char *argv[])
{
    if (argc != 5)
        return 2;
    if (IsWorker())
        return Work(argv[1], atoi(argv[2]), argv[3],
                    std::string(argv[4]) == "dense"  ? DENSE
                    : std::string(argv[4]) == "rows" ? ROWS
                                                     : BITS);
    std::unique_ptr<Server> server(IsServer() ? new Server : nullptr);
    StartAsync(0);
    Postoffice::Get()->Barrier(0, ALL);
    if (server)
        server->Run();
    Finalize(0, true);
    return 0;
}
