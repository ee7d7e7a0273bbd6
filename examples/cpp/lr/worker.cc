#include "worker.h"

#include <algorithm>
#include <cmath>

namespace lr
{
Quality Worker::Pass(const std::vector<Row> &rows, bool train)
{
    quality_ = Quality();
    for (size_t begin = 0; begin < rows.size(); begin += block_) {
        size_t n = std::min(block_, rows.size() - begin);
        pool_.Run([this, &rows, begin, n, train] { Block(&rows[begin], n, train); });
    }
    pool_.Wait();
    return quality_;
}

static std::vector<ps::Key> UniqueKeys(const Row *rows, size_t n)
{
    std::vector<ps::Key> keys;
    for (size_t i = 0; i < n; ++i)
        for (const auto &feature : rows[i].features)
            keys.push_back(feature.first);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
}

void Worker::Block(const Row *rows, size_t n, bool train)
{
    const std::vector<ps::Key> keys = UniqueKeys(rows, n);
    std::vector<float> w, gradient(keys.size(), 0.0f);
    kv_.Wait(kv_.Pull(keys, &w));

    Quality q;
    for (size_t i = 0; i < n; ++i) {
        const Row &row = rows[i];
        float sum = 0;
        std::vector<size_t> at;
        for (const auto &feature : row.features) {
            at.push_back(std::lower_bound(keys.begin(), keys.end(), feature.first) - keys.begin());
            sum += w[at.back()] * feature.second;
        }
        const float p = 1.0f / (1.0f + std::exp(-sum));
        const float likely = row.label > 0 ? p : 1.0f - p;
        q.loss -= std::log(std::max(likely, 1e-7f));
        q.right += (p > 0.5f) == (row.label > 0);
        q.rows++;
        for (size_t j = 0; j < at.size(); ++j)
            gradient[at[j]] += (p - row.label) * row.features[j].second / static_cast<float>(n) * 10.0f;
    }
    if (train)
        kv_.Wait(kv_.Push(keys, gradient));

    std::lock_guard<std::mutex> lock(mu_);
    quality_.loss += q.loss;
    quality_.rows += q.rows;
    quality_.right += q.right;
}
} // namespace lr
