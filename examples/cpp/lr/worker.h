// The worker's side: blocks of rows, several at once; for each the unique keys, a pull, loss and gradient, a
// push.
#ifndef LR_WORKER_H
#define LR_WORKER_H

#include <mutex>
#include <string>
#include <vector>

#include "data.h"
#include "ps/ps.h"
#include "thread_pool.h"

namespace lr
{
struct Quality {
    double loss = 0; // sum of log-losses
    size_t rows = 0, right = 0;
};

class Worker
{
  public:
    Worker(int block, int threads) : block_(block), kv_(0, 0), pool_(threads)
    {
    }

    // One pass over the rows; updates the model if train is set.
    Quality Pass(const std::vector<Row> &rows, bool train);

  private:
    void Block(const Row *rows, size_t n, bool train);

    const size_t block_;
    ps::KVWorker<float> kv_; // used by all threads of the pool
    ThreadPool pool_;
    std::mutex mu_;
    Quality quality_; // of the pass
};
} // namespace lr
#endif
